"""Makes and checks golden files for kvproof with Hugging Face Transformers."""
