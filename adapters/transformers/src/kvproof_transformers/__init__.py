"""Hugging Face Transformers behind kvproof's pipe."""
