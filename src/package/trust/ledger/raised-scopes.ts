import type { RaisedScopes, StatementScope } from './trust-ledger.ts';

/** Scopes that are kept. A reader that fell further behind evaluates everything again. */
const MAX_KEPT = 4096;

/** The changed marks of a ledger, so that data that depends on other marks need not be evaluated again. */
export class RaiseLog {
  #scopes: StatementScope[] = [];
  /** Version in front of the first scope. */
  #first = 1;

  add(scopes: Iterable<StatementScope>): void {
    for (const scope of scopes) this.#scopes.push(scope);
    if (this.#scopes.length > MAX_KEPT) this.forget();
  }

  /** Marks changed, and it is not known which ones. */
  forget(): void {
    this.#first += this.#scopes.length + 1;
    this.#scopes = [];
  }

  since(version: number): RaisedScopes {
    const behind = version - this.#first;
    return {
      version: this.#first + this.#scopes.length,
      scopes: behind < 0 ? undefined : this.#scopes.slice(behind),
    };
  }
}
