import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { type Secret, secretKind } from '../../resource/kinds/core/secret.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { Access } from '../access/access.ts';

export interface NewSecret {
  readonly name: string;
  readonly type: string;
  readonly stringData: Readonly<Record<string, string>>;
}

/** Makes or replaces a Secret; with `keep` its other values stay. Returns what puts it back as it was. */
export async function putSecret(
  { client, namespace }: Access,
  { name, type, stringData }: NewSecret,
  { keep = false }: { readonly keep?: boolean } = {},
): Promise<() => Promise<void>> {
  const key = { name, namespace };
  const known = await client.find(secretKind, key);
  const data = keep ? known?.data : undefined;
  await replace(known, { type, stringData, ...(data === undefined ? {} : { data }) });
  return async () => {
    const now = await client.find(secretKind, key);
    if (known === undefined) {
      if (now !== undefined) await client.delete(secretKind, key);
    } else await replace(now, { type: known.type, ...(known.data === undefined ? {} : { data: known.data }) });
  };

  async function replace(
    before: Stored<Secret> | undefined,
    content: Pick<Secret, 'type' | 'data' | 'stringData'>,
  ): Promise<void> {
    // The type of a Secret cannot change.
    const isOther = before !== undefined && before.type !== content.type;
    if (isOther) await client.delete(secretKind, key);
    if (before === undefined || isOther) {
      await client.create(secretKind, secretKind.complete({ metadata: key, ...content }));
      return;
    }
    const { resourceVersion } = before.metadata;
    await client.update(secretKind, secretKind.complete({ metadata: { ...key, resourceVersion }, ...content }));
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
