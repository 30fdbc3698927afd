import type { GitHubClient } from './github-client.ts';
import { ownUserSchema } from './github-schemas.ts';

/** The user or App that Sluice authenticates as. */
export interface Account {
  /** Undefined for an App, which cannot read its own name. */
  readonly login: string | undefined;
  /** Whether it wrote a comment or opened an issue. */
  isOwn(entry: {
    readonly user?: { readonly login: string; readonly type?: string | null | undefined } | null | undefined;
    readonly performed_via_github_app?: { readonly id: number } | null | undefined;
  }): boolean;
}

export async function readAccount(client: GitHubClient, signal: AbortSignal): Promise<Account> {
  const app = await client.app(signal);
  if (app !== undefined) {
    // GitHub names the App of each entry; users can also act through one.
    return {
      login: undefined,
      isOwn: ({ user, performed_via_github_app: by }) => by?.id === app && user?.type === 'Bot',
    };
  }
  const { login } = await client.call(ownUserSchema, signal, ({ users }, options) => users.getAuthenticated(options));
  return { login, isOwn: ({ user }) => user?.login === login };
}
