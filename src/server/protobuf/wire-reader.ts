import { isUtf8 } from 'node:buffer';
import { SluiceError } from '../../foundation/sluice-error.ts';

/** How the value of a field is laid out. Groups, which end with a field of their own, nobody writes any more. */
export type WireType = 'varint' | 'fixed64' | 'bytes' | 'fixed32';

const WIRE_TYPES: readonly (WireType | undefined)[] = ['varint', 'fixed64', 'bytes', undefined, undefined, 'fixed32'];
const MAX_VARINT_BYTES = 10;
const MAX_FIELD_NUMBER = 2 ** 29 - 1;

/**
 * Goes through one message of the protobuf wire format from its start. Everything is checked against the end of the message;
 * what does not fit is a BadRequest. Errors tell places, never values.
 */
export class WireReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get atEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** The number and the layout of the next field. */
  tag(): { readonly number: number; readonly wireType: WireType } {
    const tag = this.#length();
    const number = Math.floor(tag / 8);
    const wireType = WIRE_TYPES[tag % 8];
    if (number < 1 || number > MAX_FIELD_NUMBER) throw malformed(`field number ${number} is out of range`);
    if (wireType === undefined) throw malformed(`field ${number} has the unknown wire type ${tag % 8}`);
    return { number, wireType };
  }

  /** An unsigned number of at most 64 bits. */
  varint(): bigint {
    const start = this.#at;
    const small = this.#length();
    if (Number.isSafeInteger(small)) return BigInt(small);
    let value = 0n;
    for (let at = this.#at - 1; at >= start; at -= 1) value = (value << 7n) | BigInt((this.#bytes[at] ?? 0) & 0x7f);
    return BigInt.asUintN(64, value);
  }

  /** A part that tells its length; a view, not a copy. */
  bytes(): Buffer {
    const length = this.#length();
    if (length > this.#bytes.length - this.#at) throw malformed('a field is longer than what is left');
    const start = this.#at;
    this.#at += length;
    return this.#bytes.subarray(start, this.#at);
  }

  text(): string {
    const bytes = this.bytes();
    if (!isUtf8(bytes)) throw malformed('a text is not valid UTF-8');
    return bytes.toString('utf8');
  }

  /** Passes over the value of a field that nobody asks for. */
  skip(wireType: WireType): void {
    if (wireType === 'varint') this.#length();
    else if (wireType === 'bytes') this.bytes();
    else this.#advance(wireType === 'fixed64' ? 8 : 4);
  }

  /** A number without big integers, which are slow: exact as far as it is safe, which is beyond all lengths. */
  #length(): number {
    let value = 0;
    for (let index = 0, scale = 1; index < MAX_VARINT_BYTES; index += 1, scale *= 0x80) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw malformed('it ends within a field');
      this.#at += 1;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
    throw malformed(`a number is longer than ${MAX_VARINT_BYTES} bytes`);
  }

  #advance(length: number): void {
    if (length > this.#bytes.length - this.#at) throw malformed('it ends within a field');
    this.#at += length;
  }
}

/** What is wrong with a body; the text must not hold values of it. */
export function malformed(problem: string): SluiceError {
  return new SluiceError('BadRequest', `the body is not valid protobuf: ${problem}`);
}
