import { createHash } from 'node:crypto';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { ObjectType, Oid } from '../git-repository.ts';

const OID = /^[0-9a-f]{40}$/;

/** True for 40 lower-case hex digits. */
export function isOid(value: string): boolean {
  return OID.test(value);
}

/** Throws InvalidInput for other texts; `what` names it in the message. The zero id names no object. */
export function checkOid(value: string, what: string): Oid {
  if (!OID.test(value) || value === '0'.repeat(40))
    throw new SluiceError('InvalidInput', `${what}: ${JSON.stringify(value.slice(0, 80))} is not an object id`);
  return value;
}

/** The bytes Git hashes and stores: `<type> <size>\0` before the data. */
export function objectHeader(type: ObjectType, size: number): Buffer {
  return Buffer.from(`${type} ${size}\0`, 'latin1');
}

/** The id of an object as it is stored, header and all. */
export function hashOf(stored: Uint8Array): Oid {
  return createHash('sha1').update(stored).digest('hex');
}

export function hashObject(type: ObjectType, data: Uint8Array): Oid {
  return createHash('sha1').update(objectHeader(type, data.length)).update(data).digest('hex');
}
