"""What do DeepSpeed and DeepSpeed-Chat print?"""
