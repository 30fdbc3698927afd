import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';

/**
 * Reads one message of the protobuf wire format from its start. The library checks everything against the end of the message; what
 * does not fit is a BadRequest here. Errors name places, never values.
 */
export class WireReader {
  readonly #reader: BinaryReader;

  constructor(bytes: Uint8Array) {
    this.#reader = new BinaryReader(bytes);
  }

  get atEnd(): boolean {
    return this.#reader.pos >= this.#reader.len;
  }

  /** The number and the layout of the next field. Groups, which no current encoder writes, are refused: they nest without a length. */
  tag(): { readonly number: number; readonly wireType: WireType } {
    const [number, wireType] = checked(() => this.#reader.tag());
    if (wireType === WireType.StartGroup || wireType === WireType.EndGroup)
      throw malformed(`field ${number} has the unknown wire type ${wireType}`);
    return { number, wireType };
  }

  flag(): boolean {
    return checked(() => this.#reader.bool());
  }

  int32(): number {
    return checked(() => this.#reader.int32());
  }

  /** As exact as JSON is. */
  int64(): number {
    return Number(checked(() => this.#reader.int64()));
  }

  /** A part that states its length; a view, not a copy. */
  bytes(): Uint8Array {
    return checked(() => this.#reader.bytes());
  }

  text(): string {
    try {
      return this.#reader.string(true);
    } catch (error) {
      // TextDecoder throws a TypeError.
      throw malformed(error instanceof TypeError ? 'a text is not valid UTF-8' : messageOf(error));
    }
  }

  /** Passes over the value of a field that the tables do not know. */
  skip(wireType: WireType): void {
    checked(() => this.#reader.skip(wireType));
  }
}

/** The library throws errors of no type of its own; nothing but it may run in here. */
function checked<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw malformed(messageOf(error));
  }
}

/** What is wrong with a body; the text must not hold values of it. */
export function malformed(problem: string): SluiceError {
  return new SluiceError('BadRequest', `the body is not valid protobuf: ${problem}`);
}
