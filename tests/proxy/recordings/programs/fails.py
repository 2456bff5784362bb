def price(table, name):
    return table[name] * 2


def main():
    table = {"tea": 3}
    try:
        price(table, "milk")
    except KeyError:
        print("no milk", flush=True)
    return price(table, "sugar")


main()
