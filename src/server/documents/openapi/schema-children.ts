interface Children<Schema> {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
}

/** Applies `change` to all direct child schemas of a schema. Property names of any kind are safe. */
export function mapChildren<From extends object, To>(
  { properties, items, additionalProperties }: Children<From>,
  change: (schema: From) => To,
): Children<To> {
  return {
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, property]) => [name, change(property)]),
          ),
        }),
    ...(items === undefined ? {} : { items: change(items) }),
    ...(additionalProperties === undefined
      ? {}
      : {
          additionalProperties:
            typeof additionalProperties === 'object' ? change(additionalProperties) : additionalProperties,
        }),
  };
}
