import { rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object.ts';
import type { ActorOptions, DataOptions, Invocation, Outcome } from '../program/invocation.ts';
import { forEachName } from './for-each-name.ts';
import { findRevision, inSession } from './in-session.ts';
import { METADATA_FILE, metadataText, readLocalPackage, readPulledFrom, writeNew } from './local-package.ts';

export interface PushOptions extends DataOptions, ActorOptions {
  readonly reason?: string;
}

/** `sluice rpkg push`: all files of the folder replace those of the draft, if that is still as it was when it was pulled. */
export function rpkgPush(
  revisionName: string,
  folderName: string,
  options: PushOptions,
  invocation: Invocation,
): Promise<Outcome> {
  return inSession(options, invocation, (session) =>
    forEachName([revisionName], invocation, async (name) => {
      const folder = resolve(folderName);
      const pulled = await readPulledFrom(folder);
      if (pulled.name !== name) {
        throw new SluiceError('InvalidInput', `${folder} was pulled from ${pulled.name}, not from ${name}`);
      }
      const local = await readLocalPackage(folder);
      const revision = await findRevision(session, name);
      if (revision.commit !== pulled.commit) {
        throw new SluiceError(
          'Conflict',
          `${name} has moved since it was pulled (from ${pulled.commit} to ${revision.commit}, last by ${revision.tip.facts.actor ?? revision.tip.author}); pull it into another folder and bring your changes there`,
        );
      }
      const { files: before } = await session.store.content(name);
      const files = new Map<string, Uint8Array | null>(local);
      for (const path of before.keys()) if (!files.has(path) && path !== METADATA_FILE) files.set(path, null);
      const after = await session.store.change(
        name,
        { files, expectedCommit: pulled.commit },
        session.context(options.reason),
      );
      if (after.commit === pulled.commit) return 'is unchanged';
      const namespace = session.repository(revision.key.repository)?.metadata.namespace ?? DEFAULT_NAMESPACE;
      await replaceMetadata(folder, { name, namespace, uid: after.uid, commit: after.commit });
      return 'pushed';
    }),
  );
}

/** The folder now stands for the new commit and can be pushed again. */
async function replaceMetadata(folder: string, from: Parameters<typeof metadataText>[0]): Promise<void> {
  const target = join(folder, METADATA_FILE);
  const temporary = `${target}.${process.pid}`;
  await rm(temporary, { force: true });
  await writeNew(temporary, metadataText(from));
  await rename(temporary, target);
}
