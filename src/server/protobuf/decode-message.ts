import { WireType } from '@bufbuild/protobuf/wire';
import { setOwnValue } from '../../resource/object/own-property.ts';
import { decodeJson, MAX_VALUES } from '../http/json-text.ts';
import { textOf } from '../http/request-body.ts';
import type { FieldType, Message, NamedField, NumberType, ScalarType } from './messages/message.ts';
import { readTime } from './read-time.ts';
import { malformed, WireReader } from './wire-reader.ts';

const EMPTY: Uint8Array = Buffer.alloc(0);

/** Reads a message into what its JSON form would be. Unknown fields are skipped. BadRequest. */
export function decodeMessage(bytes: Uint8Array, type: Message): Record<string, unknown> {
  return new MessageDecoder().message(bytes, type);
}

/** Decodes one body. The tables are not recursive, so only the number of values needs a limit. */
class MessageDecoder {
  /** The same limit as for JSON. Here one or two bytes can encode a whole object. */
  #left = MAX_VALUES;

  message(bytes: Uint8Array, type: Message): Record<string, unknown> {
    const result: Record<string, unknown> = {};
    for (const field of type.always) result[field.name] = this.#emptyValue(field);
    const reader = new WireReader(bytes);
    while (!reader.atEnd) {
      const { number, wireType } = reader.tag();
      const field = type.fields.get(number);
      if (field === undefined) reader.skip(wireType);
      else this.#take(result, field, reader, wireType);
    }
    return result;
  }

  #take(result: Record<string, unknown>, field: NamedField, reader: WireReader, wireType: WireType): void {
    const { name, shape, type } = field;
    if (shape === 'map') {
      result[name] ??= {};
      const { key, value } = this.#entry(field, type as ScalarType, reader, wireType);
      setOwnValue(result[name] as Record<string, unknown>, key, value);
    } else if (shape === 'list') {
      result[name] ??= [];
      (result[name] as unknown[]).push(this.#value(name, type, reader, wireType));
    } else {
      const value = this.#value(name, type, reader, wireType);
      if (field.presence === 'filled' && isEmpty(value)) delete result[name];
      else result[name] = value;
    }
  }

  #entry(field: NamedField, type: ScalarType, reader: WireReader, wireType: WireType): { key: string; value: unknown } {
    this.#count();
    expectBytes(field.name, wireType);
    const entry = new WireReader(reader.bytes());
    let key = '';
    let value = this.#empty(type);
    while (!entry.atEnd) {
      const tag = entry.tag();
      if (tag.number === 1) {
        expectBytes(field.name, tag.wireType);
        key = entry.text();
      } else if (tag.number === 2) value = this.#value(field.name, type, entry, tag.wireType);
      else entry.skip(tag.wireType);
    }
    return { key, value };
  }

  #value(name: string, type: FieldType, reader: WireReader, wireType: WireType): unknown {
    this.#count();
    if (isNumberType(type)) {
      if (wireType !== WireType.Varint) throw malformed(`the field ${name} must be a number`);
      if (type === 'flag') return reader.flag();
      return type === 'int32' ? reader.int32() : reader.int64();
    }
    expectBytes(name, wireType);
    if (type === 'text') return reader.text();
    const bytes = reader.bytes();
    if (type === 'bytes') return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
    if (type === 'texts') return this.#texts(name, bytes);
    if (type === 'json') return jsonOf(name, bytes);
    if (type === 'time' || type === 'microTime') return readTime(bytes, type);
    return this.message(bytes, type);
  }

  #texts(name: string, bytes: Uint8Array): string[] {
    const reader = new WireReader(bytes);
    const items: string[] = [];
    while (!reader.atEnd) {
      const { number, wireType } = reader.tag();
      if (number === 1) items.push(this.#value(name, 'text', reader, wireType) as string);
      else reader.skip(wireType);
    }
    return items;
  }

  #emptyValue({ shape, type }: NamedField): unknown {
    this.#count();
    return shape === 'one' ? this.#empty(type) : null;
  }

  /** Returns the JSON value of a field that was not sent. */
  #empty(type: FieldType): unknown {
    if (typeof type === 'object') return this.message(EMPTY, type);
    if (type === 'text' || type === 'bytes') return '';
    if (type === 'texts') return [];
    if (type === 'flag') return false;
    return isNumberType(type) ? 0 : null;
  }

  #count(): void {
    this.#left -= 1;
    if (this.#left < 0) throw malformed(`it has more than ${MAX_VALUES} values`);
  }
}

/** Reads JSON in field 1 of a nested message: the fields that a manager owns. */
function jsonOf(name: string, bytes: Uint8Array): unknown {
  const reader = new WireReader(bytes);
  let raw: Uint8Array = EMPTY;
  while (!reader.atEnd) {
    const { number, wireType } = reader.tag();
    if (number !== 1) reader.skip(wireType);
    else {
      expectBytes(name, wireType);
      raw = reader.bytes();
    }
  }
  return raw.length === 0 ? null : decodeJson(textOf(raw)).value;
}

function expectBytes(name: string, wireType: WireType): void {
  if (wireType !== WireType.LengthDelimited) throw malformed(`the field ${name} must be text, bytes or a message`);
}

function isNumberType(type: FieldType): type is NumberType {
  return type === 'flag' || type === 'int32' || type === 'int64';
}

function isEmpty(value: unknown): boolean {
  return value === '' || value === 0 || value === false || value === null;
}
