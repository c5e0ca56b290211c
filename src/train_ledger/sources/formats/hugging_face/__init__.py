"""What do the Trainer of Hugging Face and its kin print?"""
