import { StarlarkObject, type Value } from './value.ts';

/** A value with immutable named fields: a `struct` or a module. */
export class Struct extends StarlarkObject {
  readonly type: string;
  /** Its constructor: `struct`, or the name of a module. */
  readonly name: string;
  readonly fields: ReadonlyMap<string, Value>;

  constructor(fields: ReadonlyMap<string, Value>, { type = 'struct', name = 'struct' } = {}) {
    super();
    this.type = type;
    this.name = name;
    this.fields = fields;
  }

  override freeze(): Iterable<Value> {
    return this.fields.values();
  }

  /** A field, or undefined; a struct that cannot be used here fails instead. */
  attribute(name: string): Value | undefined {
    return this.fields.get(name);
  }
}
