import { LruCache } from '../../foundation/lru-cache.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { type ContentLimits, ForgeBudget } from './forge-budget.ts';

/** Far more than the accounts that one installation of Sluice uses. */
const MAX_ACCOUNTS = 1000;

export interface Account {
  /** Address of the API. */
  readonly api: string;
  /** Identity of its credentials, without a secret. */
  readonly account: string;
  /** What has the credentials, for messages and metrics: `Secret default/forge`. */
  readonly name: string;
}

/** The budgets of all accounts: hosts limit an installation of an App, or a user, and not a repository. */
export class ForgeBudgets {
  readonly #clock: Clock;
  readonly #content: ContentLimits | undefined;
  readonly #budgets = new LruCache<string, ForgeBudget>({ maxEntries: MAX_ACCOUNTS });

  constructor(clock: Clock, content?: ContentLimits) {
    this.#clock = clock;
    this.#content = content;
  }

  of({ api, account, name }: Account): ForgeBudget {
    const id = JSON.stringify([api, account]);
    const known = this.#budgets.get(id);
    if (known !== undefined) return known;
    const budget = new ForgeBudget({
      ...{ clock: this.#clock, host: new URL(api).host, name },
      account: account.startsWith('app ') ? account : 'user',
      ...(this.#content === undefined ? {} : { content: this.#content }),
    });
    this.#budgets.set(id, budget);
    return budget;
  }
}
