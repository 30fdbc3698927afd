import { hostname } from 'node:os';
import { join } from 'node:path';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import { type Clock, systemClock } from '../../foundation/time/clock.ts';
import { generateSshKey } from '../../git/signing/generate-ssh-key.ts';
import { type KeySource, OwnKey } from '../../package/trust/keys/own-key.ts';
import { createKeyFile, readKeyFile } from '../../package/trust/keys/statement-key-file.ts';
import type { AttributedPushes } from '../../package/trust/ledger/attributed-pushes.ts';
import type { TrustLedger } from '../../package/trust/ledger/trust-ledger.ts';
import { SqliteAttributedPushes } from '../../package/trust/sqlite/sqlite-attributed-pushes.ts';
import { SqliteTrustLedger } from '../../package/trust/sqlite/sqlite-trust-ledger.ts';
import type { StatementSigner, VerifySignature } from '../../package/trust/statement/statement-signature.ts';
import { verifySignature } from '../../package/trust/statement/verify-signature.ts';

export interface TrustOptions {
  /** The private key, in place of the one in the data folder. */
  readonly key?: SigningKey | undefined;
  readonly clock?: Clock;
  /** Called with failures to write what need not be durable at once. */
  readonly onError?: (error: unknown) => void;
}

/** A key that an operator provides. */
export type SigningKey =
  | { readonly file: string }
  /** `secret` is `namespace/name`; `read` returns the text of its key, or throws a SluiceError with the next step. */
  | { readonly secret: string; readonly read: () => string };

/** The trust and the signing key of a server. */
export interface Trust {
  /**
   * Returns the current key; called for each statement, since the key may have been rotated. Throws a SluiceError with the next
   * step while there is no key that may sign.
   */
  readonly signer: () => StatementSigner;
  readonly verify: VerifySignature;
  /** To be closed by the caller. */
  readonly ledger: TrustLedger;
  /** To be closed by the caller. */
  readonly pushes: AttributedPushes;
}

/** Path of the ledger in a data folder. */
export function ledgerPath(dataFolder: string): string {
  return join(dataFolder, 'trust.sqlite');
}

/** Path of what Git hosts reported on who pushed. */
export function pushesPath(dataFolder: string): string {
  return join(dataFolder, 'pushes.sqlite');
}

/** Path of the server's own key in a data folder. */
export function statementKeyPath(dataFolder: string): string {
  return join(dataFolder, 'keys', 'statement-key');
}

/** Returns the comment of the server's own key in lists of keys. */
export function ownKeyComment(): string {
  return `sluice@${hostname().replace(/[^A-Za-z0-9._-]/g, '-') || 'localhost'}`;
}

/**
 * Opens the ledger of a data folder, which must exist, and the signing key; creates a missing key. Throws Refused for a key that other
 * users can read or that is revoked, InvalidInput for one that cannot sign. A Secret is read when the first statement is signed: it
 * may be created later.
 */
export async function openTrust(dataFolder: string, options: TrustOptions = {}): Promise<Trust> {
  const { key, clock = systemClock, onError } = options;
  const path = ledgerPath(dataFolder);
  const ledger = SqliteTrustLedger.open({ path, clock, ...(onError === undefined ? {} : { onError }) });
  try {
    const own = new OwnKey(keySourceOf(dataFolder, key), ledger, clock);
    if (key === undefined || 'file' in key) own.current();
    return {
      signer: () => own.current(),
      verify: verifySignature,
      ledger,
      pushes: new SqliteAttributedPushes(pushesPath(dataFolder)),
    };
  } catch (error) {
    ledger.close();
    throw error;
  }
}

/** Returns the source of the private key of a data folder; the key file is created when it is first read. */
export function keySourceOf(dataFolder: string, key: SigningKey | undefined): KeySource {
  const comment = ownKeyComment();
  if (key === undefined) {
    const path = statementKeyPath(dataFolder);
    return { name: path, comment, volatile: false, read: () => readOrCreate(path, comment) };
  }
  if ('secret' in key) return { name: `Secret ${key.secret}`, comment, volatile: true, read: key.read };
  return { name: key.file, comment, volatile: false, read: () => readKeyFile(key.file) };
}

/** A second process that starts at the same time gets the key of the first one. */
function readOrCreate(path: string, comment: string): string {
  try {
    return readKeyFile(path);
  } catch (error) {
    if (!isSluiceError(error, 'NotFound')) throw error;
  }
  createKeyFile(path, generateSshKey(comment));
  return readKeyFile(path);
}
