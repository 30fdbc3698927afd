/**
 * What is known of the type of a value before an expression is evaluated: any one of these alternatives. `dyn` may be anything, and so may a type
 * without alternatives, such as that of the entries of an empty list. Plain data, so that it can be part of a cache key.
 */
export type StaticType = 'dyn' | KnownType;

interface KnownType {
  /** Names of CEL: `string`, `int`, `google.protobuf.Duration`. */
  readonly scalars?: readonly string[];
  readonly list?: StaticType;
  readonly map?: { readonly key: StaticType; readonly value: StaticType };
  /** A map that has exactly these entries. */
  readonly fields?: Readonly<Record<string, StaticType>>;
}

export const DYN = 'dyn';
/** Beyond, two types are not compared. */
const MAX_JOINED_DEPTH = 6;
const NUMBERS: ReadonlySet<string> = new Set(['int', 'uint', 'double']);

export function scalar(...names: readonly string[]): StaticType {
  return { scalars: names };
}

export function listOf(list: StaticType): StaticType {
  return { list };
}

export function mapOf(key: StaticType, value: StaticType): StaticType {
  return { map: { key, value } };
}

export function objectOf(fields: Readonly<Record<string, StaticType>>): StaticType {
  return { fields };
}

export function isUnknown(type: StaticType): type is 'dyn' {
  return type === DYN || Object.keys(type).length === 0;
}

/** The type of a value that has one type or the other. */
export function join(one: StaticType, other: StaticType, depth = 0): StaticType {
  if (one === other) return one;
  if (one === DYN || other === DYN || depth > MAX_JOINED_DEPTH) return DYN;
  const scalars = [...new Set([...(one.scalars ?? []), ...(other.scalars ?? [])])];
  const list = joinPart(one.list, other.list, depth);
  const key = joinPart(one.map?.key, other.map?.key, depth);
  const value = joinPart(one.map?.value, other.map?.value, depth);
  // Two objects may have different fields.
  if (one.fields !== undefined && other.fields !== undefined && one.fields !== other.fields) return DYN;
  const fields = one.fields ?? other.fields;
  return {
    ...(scalars.length === 0 ? {} : { scalars }),
    ...(list === undefined ? {} : { list }),
    ...(key === undefined || value === undefined ? {} : { map: { key, value } }),
    ...(fields === undefined ? {} : { fields }),
  };
}

export function joinAll(types: readonly StaticType[]): StaticType {
  return types.reduce((all, type) => join(all, type), {} as StaticType);
}

function joinPart(one: StaticType | undefined, other: StaticType | undefined, depth: number): StaticType | undefined {
  return one === undefined || other === undefined ? (one ?? other) : join(one, other, depth + 1);
}

/** True if a value of the type can have the type of this name. */
export function canBe(type: StaticType, name: string): boolean {
  return isUnknown(type) || alternativesOf(type).includes(name);
}

/** True if a comparison of two values can be true. Numbers of all types are compared by their values, and null with anything. */
export function canEqual(one: StaticType, other: StaticType): boolean {
  if (isUnknown(one) || isUnknown(other)) return true;
  const kinds = (type: StaticType) => alternativesOf(type).map((name) => (NUMBERS.has(name) ? 'number' : name));
  const own = new Set(kinds(one));
  return kinds(other).some((name) => name === 'null_type' || own.has('null_type') || own.has(name));
}

/** `string`, or `list or double`. */
export function typeName(type: StaticType): string {
  return isUnknown(type) ? DYN : alternativesOf(type).join(' or ');
}

function alternativesOf(type: StaticType): string[] {
  if (type === DYN) return [];
  const { scalars = [], list, map, fields } = type;
  return [
    ...(list === undefined ? [] : ['list']),
    ...(map === undefined && fields === undefined ? [] : ['map']),
    ...scalars,
  ];
}
