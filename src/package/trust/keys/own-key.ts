import { SluiceError } from '../../../foundation/sluice-error.ts';
import { type Clock, timestamp } from '../../../foundation/time/clock.ts';
import type { TrustLedger } from '../ledger/trust-ledger.ts';
import type { StatementSigner } from '../statement/statement-signature.ts';
import { statementSigner } from '../statement/statement-signer.ts';

/** The source of a server's private key. */
export interface KeySource {
  /** For messages: a path, or `Secret namespace/name`. */
  readonly name: string;
  /** The text of the private key as it is now. Throws a SluiceError with the next step if there is none. */
  read(): string;
  /** True if the text can change without a change of the ledger's keys, and reading it is cheap. */
  readonly volatile: boolean;
  /** Comment of the key in lists. */
  readonly comment: string;
}

/**
 * The server's current own key: a rotation by another process applies from the next statement on. Each key that is used is in the
 * ledger before it signs. A revoked key signs nothing.
 */
export class OwnKey {
  readonly #source: KeySource;
  readonly #ledger: TrustLedger;
  readonly #clock: Clock;
  #last: { readonly text: string; readonly signer: StatementSigner; readonly keysVersion: number } | undefined;

  constructor(source: KeySource, ledger: TrustLedger, clock: Clock) {
    this.#source = source;
    this.#ledger = ledger;
    this.#clock = clock;
  }

  /**
   * Returns the signer of the next statement. Throws the errors of `source.read`, InvalidInput for an invalid key, and Refused for a
   * revoked key; for a key that can change while the server runs, all of these as Unavailable: the caller of an API made no mistake, and
   * would take NotFound for the object of the request.
   */
  current(): StatementSigner {
    try {
      return this.#current();
    } catch (error) {
      if (!this.#source.volatile || !(error instanceof SluiceError)) throw error;
      throw new SluiceError('Unavailable', error.message, { cause: error });
    }
  }

  #current(): StatementSigner {
    const { keysVersion } = this.#ledger;
    const last = this.#last;
    const changed = keysVersion !== last?.keysVersion;
    if (last !== undefined && !changed && !this.#source.volatile) return last.signer;
    const text = this.#source.read();
    if (last !== undefined && !changed && text === last.text) return last.signer;
    const signer = text === last?.text ? last.signer : enterOwnKey(text, this.#source, this.#ledger, this.#clock);
    this.#expectTrusted(signer);
    this.#last = { text, signer, keysVersion };
    return signer;
  }

  #expectTrusted({ fingerprint }: StatementSigner): void {
    const revocation = this.#ledger.keys().find((key) => key.fingerprint === fingerprint)?.revocation;
    if (revocation === undefined) return;
    throw new SluiceError(
      'Refused',
      `the signing key ${fingerprint} of ${this.#source.name} was revoked at ${revocation.at}; make another one with "sluice key rotate", or name another one with --signing-key`,
    );
  }
}

/** Puts a key of the server into the ledger; returns what signs with it. Throws InvalidInput for text that is no key. */
export function enterOwnKey(
  text: string,
  { name, comment }: Pick<KeySource, 'name' | 'comment'>,
  ledger: TrustLedger,
  clock: Clock,
): StatementSigner {
  const signer = signerOf(text, name);
  const { fingerprint, publicKey } = signer;
  ledger.addKey({ fingerprint, publicKey, comment, origin: 'own', addedAt: timestamp(clock.now()) });
  return signer;
}

function signerOf(text: string, name: string): StatementSigner {
  try {
    return statementSigner(text);
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    throw new SluiceError(error.code, `${name}: ${error.message}`, { cause: error });
  }
}
