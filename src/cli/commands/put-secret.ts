import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { secretKind } from '../../resource/kinds/secret.ts';
import { keyOf } from '../../resource/object.ts';
import type { Access } from '../access/access.ts';

export interface NewSecret {
  readonly name: string;
  readonly type: string;
  readonly stringData: Readonly<Record<string, string>>;
}

/** Makes or replaces a Secret. */
export async function putSecret({ client, namespace }: Access, { name, ...content }: NewSecret): Promise<void> {
  const secret = { metadata: { name, namespace }, ...content };
  const known = await client.find(secretKind, keyOf(secret));
  if (known === undefined) await client.create(secretKind, secret);
  else {
    const { resourceVersion } = known.metadata;
    await client.update(
      secretKind,
      secretKind.complete({ ...secret, metadata: { ...secret.metadata, resourceVersion } }),
    );
  }
}

/** The text of a file, or of stdin for `-`, without the line break at its end. `what` is for the message. */
export async function readSecretFile(what: string, file: string): Promise<string> {
  try {
    const text = file === '-' ? await readAll(process.stdin) : await readFile(file, 'utf8');
    return text.replace(/\r?\n$/, '');
  } catch (error) {
    throw new SluiceError('InvalidInput', `cannot read ${what} from ${file}: ${messageOf(error)}`, { cause: error });
  }
}
