import type { Dirent } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { type Manifest, type ManifestFile, readManifests } from '../../resource/client/manifests.ts';
import { eventKind } from '../../resource/kinds/core/event.ts';
import { OBJECT_KINDS } from '../../resource/kinds/index.ts';
import { keyOf, keyText } from '../../resource/object/object.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import type { Session } from './session.ts';

const EXTENSIONS = /\.(ya?ml|json)$/;

/** The result for one manifest. */
export interface Applied {
  readonly what: string;
  readonly outcome: 'created' | 'configured' | 'unchanged';
}

/** Reads files and folders (not what is below them) with manifests. Throws InvalidInput with file and line of every flaw. */
export async function readConfig(places: readonly string[]): Promise<Manifest[]> {
  const files: ManifestFile[] = [];
  for (const place of places) {
    for (const path of await filesAt(place)) files.push({ path, text: await readFile(path, 'utf8') });
  }
  return readManifests(
    files,
    OBJECT_KINDS.filter((kind) => kind !== eventKind),
  );
}

async function filesAt(place: string): Promise<string[]> {
  let entries: Dirent[];
  try {
    if (!(await stat(place)).isDirectory()) return [place];
    entries = await readdir(place, { withFileTypes: true });
  } catch (error) {
    throw new SluiceError('InvalidInput', `cannot read the configuration ${place}: ${messageOf(error)}`, {
      cause: error,
    });
  }
  const names = entries.filter((entry) => !entry.isDirectory() && EXTENSIONS.test(entry.name)).map(({ name }) => name);
  if (names.length === 0) {
    throw new SluiceError(
      'InvalidInput',
      `the folder ${place} has no .yaml, .yml or .json files; name another one with --config`,
    );
  }
  return names.sort().map((name) => join(place, name));
}

/** Creates or updates the objects. Labels and annotations of other writers stay. */
export async function applyConfig(session: Session, manifests: readonly Manifest[]): Promise<Applied[]> {
  const applied: Applied[] = [];
  for (const { kind, object } of manifests) {
    const key = keyOf(object);
    const known = await session.client.find(kind, key);
    const what = `${kind.kind} ${keyText(key)}`;
    if (known === undefined) {
      await session.client.create(kind, object);
      applied.push({ what, outcome: 'created' });
      continue;
    }
    const next = {
      ...object,
      metadata: {
        ...known.metadata,
        labels: { ...known.metadata.labels, ...object.metadata.labels },
        annotations: { ...known.metadata.annotations, ...object.metadata.annotations },
      },
    };
    const { status: _old, ...before } = known;
    const { status: _new, ...after } = next;
    const same = sameValue(withoutEmpty(before), withoutEmpty(after));
    if (!same) await session.client.update(kind, next);
    applied.push({ what, outcome: same ? 'unchanged' : 'configured' });
  }
  return applied;
}

/** No labels are the same as an empty set of labels. */
function withoutEmpty<T extends { readonly metadata: object }>(object: T): unknown {
  const metadata = Object.entries(object.metadata).filter(([, value]) => !sameValue(value, {}));
  return { ...object, metadata: Object.fromEntries(metadata) };
}
