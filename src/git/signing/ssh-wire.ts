import { SluiceError } from '../../foundation/sluice-error.ts';

/** A string of the SSH wire format (RFC 4251): its length in four bytes, then its bytes. */
export function sshString(value: string | Uint8Array): Buffer {
  const data = typeof value === 'string' ? Buffer.from(value, 'utf8') : value;
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  return Buffer.concat([length, data]);
}

/** An unsigned number, given big-endian, as an `mpint`: without zeros in front, but with one where the top bit is set. */
export function sshNumber(value: Uint8Array): Buffer {
  const digits = withoutZeros(value);
  return sshString((digits[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.alloc(1), digits]) : digits);
}

export function withoutZeros(value: Uint8Array): Uint8Array {
  const first = value.findIndex((byte) => byte !== 0);
  return first < 0 ? value.subarray(value.length) : value.subarray(first);
}

/** Reads the wire format from the front. Throws InvalidInput where the data ends too soon. */
export class SshReader {
  readonly #name: string;
  #rest: Buffer;

  /** The name is for messages: `<name> ends too soon`. */
  constructor(data: Buffer, name = 'the data') {
    this.#rest = data;
    this.#name = name;
  }

  take(length: number): Buffer {
    if (length > this.#rest.length) throw new SluiceError('InvalidInput', `${this.#name} ends too soon`);
    const taken = this.#rest.subarray(0, length);
    this.#rest = this.#rest.subarray(length);
    return taken;
  }

  uint32(): number {
    return this.take(4).readUInt32BE();
  }

  bytes(): Buffer {
    return this.take(this.uint32());
  }

  text(): string {
    return this.bytes().toString('latin1');
  }
  /** Throws InvalidInput if data remains. */
  end(): void {
    if (this.#rest.length > 0) throw new SluiceError('InvalidInput', `${this.#name} has data after its end`);
  }
}
