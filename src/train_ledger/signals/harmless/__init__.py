"""What may be taken and done inside a training process without harm to it?"""
