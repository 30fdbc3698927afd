import { SluiceError } from '../../foundation/sluice-error.ts';
import type { NewTag } from '../git-repository.ts';
import { checkRefName } from '../ref-name.ts';
import { checkSignature, encodeSignature } from './commit-codec.ts';
import { checkOid } from './object-id.ts';

/**
 * Encodes a tag object without a signature, which is what a signer signs. Throws InvalidInput for values that Git
 * cannot store.
 */
export function encodeTag({ object, type, name, tagger, message }: NewTag): Buffer {
  checkRefName(`refs/tags/${name}`);
  if (message.includes('\0'))
    throw new SluiceError('InvalidInput', 'the message of a tag must not contain a NUL character');
  const headers = [
    `object ${checkOid(object, 'object of a tag')}`,
    `type ${type}`,
    `tag ${name}`,
    `tagger ${encodeSignature(tagger, 'tagger')}`,
  ];
  // The signature follows the message on separate lines.
  const body = message === '' || message.endsWith('\n') ? message : `${message}\n`;
  return Buffer.from(`${headers.join('\n')}\n\n${body}`, 'utf8');
}

/** The tag with the signer's text at its end. */
export function appendSignature(payload: Buffer, signature: string): Buffer {
  return Buffer.concat([payload, Buffer.from(`${checkSignature(signature)}\n`, 'utf8')]);
}

/** The id of what a tag object names; undefined if it is damaged. */
export function targetOfTag(data: Uint8Array): string | undefined {
  return /^object ([0-9a-f]{40})\n/.exec(Buffer.from(data.subarray(0, 48)).toString('latin1'))?.[1];
}
