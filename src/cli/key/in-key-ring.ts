import { type DataFolder, exists, expectDataFolder } from '../../app/data/data-folder.ts';
import { ObjectSet } from '../../app/data/object-set.ts';
import { keySourceOf, ledgerPath, statementKeyPath } from '../../app/trust/open-trust.ts';
import { type SigningChoice, signingChoice, signingKeyOf } from '../../app/trust/signing-choice.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { generateSshKey } from '../../git/signing/generate-ssh-key.ts';
import { enterOwnKey } from '../../package/trust/keys/own-key.ts';
import { replaceKeyFile } from '../../package/trust/keys/statement-key-file.ts';
import { SqliteTrustLedger } from '../../package/trust/sqlite/sqlite-trust-ledger.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { DEFAULT_LEDGER_NAMESPACE, folderOf, localFolderOf, noCluster, placeOf } from '../access/place.ts';
import type { Invocation, PlaceOptions } from '../output/invocation.ts';
import { toJson, toYaml } from '../output/structured.ts';
import { type KeyRing, keyOf, providedKey } from './key-ring.ts';

export interface KeyOptions extends PlaceOptions {
  readonly output: 'text' | 'table' | 'json' | 'yaml';
  readonly ledgerNamespace?: string;
}

/** Opens the keys of the data folder or of the installation that a command line means. `write` is false for a command that only reads. */
export async function inKeyRing<Result>(
  options: KeyOptions,
  invocation: Invocation,
  run: (ring: KeyRing) => Promise<Result> | Result,
  write = true,
): Promise<Result> {
  const { environment } = invocation;
  const choice = signingChoice(environment);
  const place = placeOf(options, environment);
  const folder = localFolderOf(place, environment);
  if (place.kind === 'server' && folder === undefined) {
    const { inClusterKeyRing } = await import('./in-cluster-key-ring.ts');
    const namespace = options.ledgerNamespace ?? choice.secret?.namespace ?? DEFAULT_LEDGER_NAMESPACE;
    return inClusterKeyRing({ place, namespace, choice, write }, invocation, run);
  }
  if (options.ledgerNamespace !== undefined) throw noCluster();
  return inFolderKeyRing(folder ?? folderOf(options, environment), choice, run);
}

async function inFolderKeyRing<Result>(
  folder: DataFolder,
  choice: SigningChoice,
  run: (ring: KeyRing) => Promise<Result> | Result,
): Promise<Result> {
  await expectDataFolder(folder);
  const clock = systemClock;
  const objects = (await exists(folder.database)) ? await ObjectSet.open({ folder, clock, write: false }) : undefined;
  try {
    const ledger = SqliteTrustLedger.open({ path: ledgerPath(folder.path), clock });
    try {
      const client = objects?.client({ name: 'sluice' });
      const secret = choice.secret === undefined ? undefined : await client?.find(secretKind, choice.secret);
      const repositories = (await client?.list(repositoryKind))?.items ?? [];
      const key = signingKeyOf(choice, () => secret);
      const source = keySourceOf(folder.path, key);
      const enter = (text: string) => keyOf(ledger, enterOwnKey(text, source, ledger, clock).fingerprint);
      return await run({
        ...{ ledger, source, repositories },
        own: () => enter(source.read()),
        rotate: async () => {
          if (key !== undefined) throw providedKey(source);
          const text = generateSshKey(source.comment);
          // The file first: a running server reads it again when the ledger has a new key.
          replaceKeyFile(statementKeyPath(folder.path), text);
          return enter(text);
        },
      });
    } finally {
      ledger.close();
    }
  } finally {
    await objects?.close();
  }
}

/** Prints data where `--output` wants it; returns false where a text is wanted. */
export function printedAsData(value: unknown, { output }: KeyOptions, { terminal }: Invocation): boolean {
  if (output !== 'json' && output !== 'yaml') return false;
  terminal.out.write(output === 'json' ? toJson(value) : toYaml(value));
  return true;
}
