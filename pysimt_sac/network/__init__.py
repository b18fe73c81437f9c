"""The translation network: layers, their gradients, the output layer, and `SimultaneousNMT`."""
