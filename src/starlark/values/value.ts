/** A value that JavaScript has no primitive for. */
export abstract class StarlarkObject {
  /** The result of `type`. */
  abstract readonly type: string;

  /** The result of `bool`. */
  get truth(): boolean {
    return true;
  }

  /** Freezes this one value, and returns its elements, which must be frozen next: none if it was frozen before. */
  freeze(): Iterable<Value> {
    return [];
  }
}

/**
 * A value of Starlark. None is null; an int is a number or, beyond what is exact, a bigint (see `Int`); a float is a `Float`. A string
 * is a JavaScript one: its elements are UTF-16 code units.
 */
export type Value = null | boolean | number | bigint | string | StarlarkObject;

/** The result of `type`. */
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

/** The result of `bool`. */
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

/** Freezes a value with all its elements. */
export function freeze(value: Value): void {
  const open: Value[] = [value];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (at instanceof StarlarkObject) for (const inner of at.freeze()) open.push(inner);
  }
}
