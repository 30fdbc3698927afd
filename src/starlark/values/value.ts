/** A value that JavaScript has no primitive for. */
export abstract class StarlarkObject {
  /** What `type` gives. */
  abstract readonly type: string;

  /** What `bool` gives. */
  get truth(): boolean {
    return true;
  }

  /** Makes this one value unchangeable, and returns the values in it that must follow: none if it was frozen before. */
  freeze(): Iterable<Value> {
    return [];
  }
}

/**
 * A value of Starlark. None is null; an int is a number or, beyond what is exact, a bigint (see `Int`); a float is a `Float`. A string
 * is a JavaScript one: its elements are UTF-16 code units.
 */
export type Value = null | boolean | number | bigint | string | StarlarkObject;

/** What `type` gives. */
export function typeName(value: Value): string {
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'boolean':
      return 'bool';
    case 'number':
    case 'bigint':
      return 'int';
    default:
      return value === null ? 'NoneType' : value.type;
  }
}

/** What `bool` gives. */
export function truth(value: Value): boolean {
  switch (typeof value) {
    case 'boolean':
      return value;
    case 'string':
      return value.length > 0;
    case 'number':
      return value !== 0;
    case 'bigint':
      return true;
    default:
      return value === null ? false : value.truth;
  }
}

export function isInt(value: Value): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint';
}

/** Makes a value and all that it holds unchangeable. */
export function freeze(value: Value): void {
  const open: Value[] = [value];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (at instanceof StarlarkObject) for (const inner of at.freeze()) open.push(inner);
  }
}
