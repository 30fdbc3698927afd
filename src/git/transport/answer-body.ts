import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { ProtocolError } from './protocol-error.ts';

/** The body of an answer, unpacked. Throws ProtocolError for a compression that was not asked for. */
export function unpacked(body: Readable, encoding: string | string[] | undefined): Readable {
  const name = String(encoding ?? 'identity').toLowerCase();
  if (name === 'identity' || name === '') return body;
  if (name !== 'gzip' && name !== 'x-gzip')
    throw new ProtocolError(`it is compressed as ${JSON.stringify(name.slice(0, 40))}, which was not asked for`);
  // Whoever reads hears of an error of either.
  return pipeline(body, createGunzip(), () => {});
}
