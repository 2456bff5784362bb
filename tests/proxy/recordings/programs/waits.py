import time

going = True
print("ready", flush=True)
while going: time.sleep(0.02)
print("done", flush=True)
