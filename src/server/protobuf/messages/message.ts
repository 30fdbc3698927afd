/**
 * Tables of the messages of the Kubernetes API: for every field its number on the wire, its name in JSON, and when JSON
 * contains it. Go omits other values in JSON than on the wire, so a table has both.
 */

/** A value that is one number on the wire. */
export type NumberType = 'flag' | 'int32' | 'int64';

/**
 * A value with its length on the wire: text, bytes (base64 in JSON), a time of full seconds or of microseconds (RFC 3339 in
 * JSON, null for none), a message that only wraps a list of texts or JSON, or a message.
 */
export type ScalarType = NumberType | 'text' | 'bytes' | 'time' | 'microTime' | 'texts' | 'json';
export type FieldType = ScalarType | Message;

export interface Field {
  readonly number: number;
  readonly type: FieldType;
  readonly shape: 'one' | 'list' | 'map';
  /**
   * When JSON contains the field: if it is not empty (Go's `omitempty`), if it was sent (a pointer in Go), or always (Go's
   * structs, and fields that are required).
   */
  readonly presence: 'filled' | 'sent' | 'always';
}

export interface NamedField extends Field {
  readonly name: string;
}

export interface Message {
  readonly fields: ReadonlyMap<number, NamedField>;
  /** The fields that JSON always has. */
  readonly always: readonly NamedField[];
}

export function message(fields: Readonly<Record<string, Field>>): Message {
  const named = Object.entries(fields).map(([name, field]) => ({ ...field, name }));
  return {
    fields: new Map(named.map((field) => [field.number, field])),
    always: named.filter(({ presence }) => presence === 'always'),
  };
}

export const text = (number: number): Field => one(number, 'text', 'filled');
export const flag = (number: number): Field => one(number, 'flag', 'filled');
export const int32 = (number: number): Field => one(number, 'int32', 'filled');
export const int64 = (number: number): Field => one(number, 'int64', 'filled');
export const json = (number: number): Field => one(number, 'json', 'sent');
/** Go's encoder does not see that a time is empty, and writes null. */
export const time = (number: number): Field => one(number, 'time', 'always');
export const microTime = (number: number): Field => one(number, 'microTime', 'always');
export const part = (number: number, type: Message): Field => one(number, type, 'always');
export const list = (number: number, type: FieldType): Field => ({ number, type, shape: 'list', presence: 'filled' });
export const map = (number: number, type: ScalarType): Field => ({ number, type, shape: 'map', presence: 'filled' });

/** A pointer in Go: JSON has what was sent, also if it is empty. */
export const optional = (field: Field): Field => ({ ...field, presence: 'sent' });
/** JSON has it even if it is empty. */
export const required = (field: Field): Field => ({ ...field, presence: 'always' });
/** JSON has it only if it is not empty. */
export const filled = (field: Field): Field => ({ ...field, presence: 'filled' });

function one(number: number, type: FieldType, presence: Field['presence']): Field {
  return { number, type, shape: 'one', presence };
}
