"""The Hugging Face host: any `AutoModelForSeq2SeqLM` as the engine's network. It alone imports transformers."""
