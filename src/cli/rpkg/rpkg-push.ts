import { rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { findRevision } from '../access/find-revision.ts';
import { forEachName } from '../access/for-each-name.ts';
import { inPackages } from '../access/in-packages.ts';
import { METADATA_FILE, pushFiles } from '../access/package-contents.ts';
import { checkLocalPackage } from '../kptfile/check-local-package.ts';
import { metadataText, readLocalPackage, readPulledFrom, writeNew } from '../kptfile/local-package.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';

export interface PushOptions extends PlaceOptions, ActorOptions {
  readonly reason?: string;
}

/** `sluice rpkg push`: all files of the folder replace those of the draft, if that is still as it was when it was pulled. */
export function rpkgPush(
  revisionName: string,
  folderName: string,
  options: PushOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  return inPackages(options, invocation, (access) =>
    forEachName(
      [revisionName],
      invocation,
      access,
      async (name) => {
        const folder = resolve(folderName);
        const pulled = await readPulledFrom(folder);
        if (pulled.name !== name) {
          throw new SluiceError('InvalidInput', `${folder} was pulled from ${pulled.name}, not from ${name}`);
        }
        const local = await readLocalPackage(folder);
        // Another server has rules of its own.
        for (const problem of access.isSluice ? checkLocalPackage(folderName, local) : []) {
          const label = invocation.terminal.style('yellow', 'warning:', invocation.terminal.err);
          invocation.terminal.note(`${label} ${printable(problem)}`);
        }
        const revision = await findRevision(access, name);
        const after = await pushFiles(access, revision, local, pulled.state, options.reason);
        if (after === undefined) return 'is unchanged';
        for (const line of after.notes) invocation.terminal.note(printable(line));
        const { namespace = access.namespace, uid } = revision.metadata;
        await replaceMetadata(folder, { name, namespace, uid, state: after.state });
        // The files are saved; the caller is notified that they could not be rendered.
        if (after.failure !== undefined) throw after.failure;
        return 'pushed';
      },
      options,
    ),
  );
}

/** The folder now corresponds to the new state and can be pushed again. */
async function replaceMetadata(folder: string, from: Parameters<typeof metadataText>[0]): Promise<void> {
  const target = join(folder, METADATA_FILE);
  const temporary = `${target}.${process.pid}`;
  await rm(temporary, { force: true });
  await writeNew(temporary, metadataText(from));
  await rename(temporary, target);
}
