"""What do the host, the allocator and the GPU say beside the step?"""
