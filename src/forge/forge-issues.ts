/** Tickets of a repository, for tasks of people. The contract of `Forge` applies. */
export interface ForgeIssues {
  /** Opens a ticket, or returns the one whose body has the same marker. The marker is added to the body as an invisible comment. */
  ensure(wanted: NewIssue, options?: { readonly signal?: AbortSignal | undefined }): Promise<Issue>;
  /** Rejects with NotFound. */
  get(number: number, options?: { readonly signal?: AbortSignal | undefined }): Promise<Issue>;
  update(
    number: number,
    change: { readonly title?: string; readonly body?: string; readonly state?: 'open' | 'closed' },
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<Issue>;
}

export interface NewIssue {
  readonly title: string;
  readonly body: string;
  readonly labels: readonly string[];
  /** Logins. */
  readonly assignees: readonly string[];
  /** Identifies it; letters, digits, `-`, `.`, `/`. */
  readonly marker: string;
}

export interface Issue {
  readonly number: number;
  readonly url: string;
  readonly state: 'open' | 'closed';
  readonly title: string;
  readonly body: string;
  readonly labels: readonly string[];
  readonly assignees: readonly string[];
  readonly updatedAt: string;
}
