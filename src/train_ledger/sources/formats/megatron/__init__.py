"""What does Megatron-LM print, and those that were made from it?"""
