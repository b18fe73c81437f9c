"""Small subword models: `low` is a unit at the end of a word and within one."""

from pysimt_sac.text.subwords import Segmentation

CODES = "#version: 0.2\nl o\nlo w</w>\nlo w"
BPE = Segmentation("bpe", CODES, "low 5\nlow@@ 1\nlo@@ 2\nw@@ 2\ne@@ 2\nr 2", 2)
