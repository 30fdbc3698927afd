import { z } from 'zod';

// The parts of the responses of GitHub's REST API (version 2022-11-28) that are used.

const user = z.object({ login: z.string(), type: z.string().nullish() }).nullish();
const label = z.object({ name: z.string() });

/** Also the form in lists, which has no `merged_by`. */
export const pullSchema = z.object({
  number: z.int().positive(),
  html_url: z.string(),
  state: z.enum(['open', 'closed']),
  title: z.string(),
  body: z.string().nullish(),
  user,
  labels: z.array(label),
  merged_at: z.string().nullish(),
  merged_by: user,
  merge_commit_sha: z.string().nullish(),
  closed_at: z.string().nullish(),
  created_at: z.string(),
  updated_at: z.string(),
  head: z.object({ ref: z.string(), sha: z.string(), repo: z.object({ id: z.int() }).nullish() }),
  base: z.object({ ref: z.string(), sha: z.string(), repo: z.object({ id: z.int() }) }),
});
export const pullsSchema = z.array(pullSchema);
export type GitHubPull = z.infer<typeof pullSchema>;

const reviewSchema = z.object({
  id: z.int(),
  user,
  state: z.string(),
  commit_id: z.string().nullish(),
  html_url: z.string(),
  submitted_at: z.string().nullish(),
});
export const reviewsSchema = z.array(reviewSchema);
export type GitHubReview = z.infer<typeof reviewSchema>;

export const eventsSchema = z.array(z.object({ event: z.string(), actor: user, created_at: z.string() }));
export const commentSchema = z.object({
  id: z.int().positive(),
  node_id: z.string().optional(),
  user,
  body: z.string().nullish(),
  html_url: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
  performed_via_github_app: z.object({ id: z.int() }).nullish(),
});
export const commentsSchema = z.array(commentSchema);
export type GitHubComment = z.infer<typeof commentSchema>;

export const issueSchema = z.object({
  number: z.int().positive(),
  html_url: z.string(),
  state: z.string(),
  state_reason: z.string().nullish(),
  title: z.string(),
  body: z.string().nullish(),
  user,
  /** GitHub also permits names alone. */
  labels: z.array(z.union([z.string(), z.object({ name: z.string().nullish() })])),
  assignees: z.array(z.object({ login: z.string() })).nullish(),
  closed_at: z.string().nullish(),
  updated_at: z.string(),
  pull_request: z.unknown().optional(),
  performed_via_github_app: z.object({ id: z.int() }).nullish(),
});
export const issuesSchema = z.array(issueSchema);
export type GitHubIssue = z.infer<typeof issueSchema>;

export const ownUserSchema = z.object({ login: z.string() });
export const permissionSchema = z.object({ permission: z.string() });

export const membershipSchema = z.object({ state: z.string() });

const statusSchema = z.object({
  context: z.string(),
  state: z.string(),
  description: z.string().nullish(),
  target_url: z.string().nullish(),
});
export const combinedStatusSchema = z.object({ statuses: z.array(statusSchema) });
export type CommitStatus = z.infer<typeof statusSchema>;

export const checkRunSchema = z.object({
  id: z.int(),
  name: z.string(),
  status: z.string(),
  conclusion: z.string().nullish(),
  external_id: z.string().nullish(),
  output: z.object({ title: z.string().nullish(), text: z.string().nullish(), annotations_count: z.int().nullish() }),
  app: z.object({ id: z.int() }).nullish(),
});
export const checkRunsSchema = z.object({ check_runs: z.array(checkRunSchema) });
export type CheckRun = z.infer<typeof checkRunSchema>;

export const matchingRefsSchema = z.array(z.object({ ref: z.string(), object: z.object({ sha: z.string() }) }));
export const treeSchema = z.object({
  sha: z.string(),
  tree: z.array(z.object({ path: z.string(), type: z.string(), sha: z.string() })),
});

export const installationSchema = z.object({ id: z.int() });
export const installationTokenSchema = z.object({ token: z.string().min(1), expires_at: z.string() });

/** The body of a response that is not used. */
export const anySchema = z.unknown();

/** What says whether a pull request can be merged; `mergeable` is null while GitHub finds out. */
export const mergeStateSchema = z.object({
  node_id: z.string(),
  state: z.enum(['open', 'closed']),
  draft: z.boolean().nullish(),
  mergeable: z.boolean().nullish(),
  mergeable_state: z.string(),
  base: z.object({ ref: z.string() }),
});
export type MergeState = z.infer<typeof mergeStateSchema>;

export const mergeResultSchema = z.object({ sha: z.string(), merged: z.boolean() });

/** One rule of the rulesets that apply to a branch. */
const branchRuleSchema = z.object({
  type: z.string(),
  parameters: z
    .object({
      strict_required_status_checks_policy: z.boolean().nullish(),
      allowed_merge_methods: z.array(z.string()).nullish(),
    })
    .nullish(),
});
export type BranchRule = z.infer<typeof branchRuleSchema>;
export const branchRulesSchema = z.array(branchRuleSchema);

/** Methods of merging that a repository permits. */
export const methodsSchema = z.object({
  allow_merge_commit: z.boolean().nullish(),
  allow_squash_merge: z.boolean().nullish(),
  allow_rebase_merge: z.boolean().nullish(),
});

/** `protected` is set for classic protection, and for rulesets. */
export const branchSchema = z.object({ protected: z.boolean() });

export const queuedSchema = z.object({
  repository: z.object({ pullRequest: z.object({ isInMergeQueue: z.boolean() }).nullish() }).nullish(),
});

const loginSchema = z.object({ login: z.string() });
export const queueEntrySchema = z.object({
  viewer: loginSchema,
  repository: z
    .object({
      pullRequest: z
        .object({ id: z.string(), mergeQueueEntry: z.object({ enqueuer: loginSchema.nullish() }).nullish() })
        .nullish(),
    })
    .nullish(),
});

const queuedCommitSchema = z.object({
  oid: z.string(),
  associatedPullRequests: z
    .object({
      totalCount: z.int(),
      nodes: z.array(z.object({ state: z.string(), headRefOid: z.string() }).nullish()).nullish(),
    })
    .nullish(),
});
export type QueuedCommit = z.infer<typeof queuedCommitSchema>;
const entrySchema = z.object({
  pullRequest: z.object({ number: z.int().positive() }).nullish(),
  headCommit: queuedCommitSchema.nullish(),
});
export type QueueEntry = z.infer<typeof entrySchema> | null | undefined;
export const queueEntriesSchema = z.object({
  repository: z
    .object({
      mergeQueue: z
        .object({ entries: z.object({ nodes: z.array(entrySchema.nullish()).nullish() }).nullish() })
        .nullish(),
    })
    .nullish(),
});

export const editedSchema = z.object({
  node: z.object({ body: z.string().optional(), lastEditedAt: z.string().nullish() }).nullish(),
});

const graphqlErrorSchema = z.object({
  type: z.string().nullish(),
  message: z.string(),
  /** Names and indexes that lead to what failed in the data; missing for an error of the whole query. */
  path: z.array(z.union([z.string(), z.int()])).nullish(),
  /** Of an error in the query or its variables: what is wrong there. */
  extensions: z.unknown().optional(),
});

export type GraphqlError = z.infer<typeof graphqlErrorSchema>;

/** The response of GraphQL, which has the status 200 for failures too. */
export const graphqlSchema = z.object({
  /** Missing where GitHub has not executed the query. */
  data: z.unknown().optional(),
  errors: z.array(graphqlErrorSchema).nullish(),
});
