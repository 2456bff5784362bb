def double(number):
    result = number * 2
    return result


def main():
    numbers = [1, 2, 3]
    total = 0
    for number in numbers:
        total += double(number)
    print("total", total, flush=True)


main()
