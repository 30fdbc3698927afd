import type { RaisedScopes } from '../../trust/ledger/trust-ledger.ts';
import type { RepositoryTrust } from '../../trust/repository-trust.ts';

/** The marks of the ledger that were raised since an index has used them. */
export class RaisedMarks {
  readonly #trust: Pick<RepositoryTrust, 'repository' | 'raisedSince'>;
  #version = 0;

  constructor(trust: Pick<RepositoryTrust, 'repository' | 'raisedSince'>) {
    this.#trust = trust;
  }

  /** Those that were raised since the version of the last `noteUsed`. */
  read(): RaisedScopes {
    return this.#trust.raisedSince(this.#version);
  }

  noteUsed({ version }: Pick<RaisedScopes, 'version'>): void {
    this.#version = version;
  }

  /** True if there are some of this repository. */
  hasOwn(): boolean {
    const raised = this.read();
    if (raised.scopes?.some(({ repository }) => repository === this.#trust.repository) === true) return true;
    // Where it is not known which ones were raised, the index has to note that.
    if (raised.scopes !== undefined) this.noteUsed(raised);
    return false;
  }
}
