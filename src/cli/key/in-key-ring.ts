import { exists, expectDataFolder } from '../../app/data/data-folder.ts';
import { ObjectSet } from '../../app/data/object-set.ts';
import { keySourceOf, ledgerPath, statementKeyPath } from '../../app/trust/open-trust.ts';
import { signingChoice, signingKeyOf } from '../../app/trust/signing-choice.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { generateSshKey } from '../../git/signing/generate-ssh-key.ts';
import { enterOwnKey, type KeySource } from '../../package/trust/keys/own-key.ts';
import { replaceKeyFile } from '../../package/trust/keys/statement-key-file.ts';
import type { TrustedKey, TrustLedger } from '../../package/trust/ledger/trust-ledger.ts';
import { SqliteTrustLedger } from '../../package/trust/sqlite/sqlite-trust-ledger.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import type { Stored } from '../../resource/object/object.ts';
import { folderOf } from '../access/place.ts';
import type { DataOptions, Invocation } from '../output/invocation.ts';
import { toJson, toYaml } from '../output/structured.ts';

export interface KeyOptions extends DataOptions {
  readonly output: 'text' | 'table' | 'json' | 'yaml';
}

/** The keys of a data folder, beside a running `up` or without one. */
export interface KeyRing {
  readonly ledger: TrustLedger;
  /** The source of the own key. */
  readonly source: KeySource;
  readonly repositories: readonly Stored<Repository>[];
  /**
   * Returns the current signing key, revoked or not; creates one if there is none. Throws the SluiceError if it cannot be read.
   */
  own(): TrustedKey;
  /** Puts a new key in the place of the own one. Throws Unsupported where the operator provides it. */
  rotate(): TrustedKey;
}

/** Opens the keys of the data folder that a command line means. */
export async function inKeyRing<Result>(
  options: DataOptions,
  { environment }: Invocation,
  run: (ring: KeyRing) => Result,
): Promise<Result> {
  const folder = folderOf(options, environment);
  await expectDataFolder(folder);
  const choice = signingChoice(environment);
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
      return run({
        ...{ ledger, source, repositories },
        own: () => enter(source.read()),
        rotate: () => {
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

/** A key of the ledger. Throws NotFound with what to do. */
export function keyOf(ledger: TrustLedger, fingerprint: string): TrustedKey {
  const found = ledger.keys().find((key) => key.fingerprint === fingerprint);
  if (found !== undefined) return found;
  throw new SluiceError('NotFound', `no key ${JSON.stringify(fingerprint)} is known; "sluice key show" lists the keys`);
}

/** Prints data where `--output` wants it; returns false where a text is wanted. */
export function printedAsData(value: unknown, { output }: KeyOptions, { terminal }: Invocation): boolean {
  if (output !== 'json' && output !== 'yaml') return false;
  terminal.out.write(output === 'json' ? toJson(value) : toYaml(value));
  return true;
}

function providedKey({ name }: KeySource): SluiceError {
  return new SluiceError(
    'Unsupported',
    `the signing key is provided in ${name}: put another key there and run "sluice key show" with the same option, after which a running server uses it`,
  );
}
