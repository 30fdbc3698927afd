import { z } from 'zod';

// The parts of the responses of Gitea's API (version 1) that are used; Forgejo has the same. Empty times are `0001-01-01T00:00:00Z` or null.

const user = z.object({ login: z.string() });

export const labelSchema = z.object({ id: z.int(), name: z.string() });
export const labelsSchema = z.array(labelSchema);

/** How a pull request can be merged without a merge by the host. Forgejo and earlier versions report none of it. */
export const manualMergesSchema = z.object({
  allow_manual_merge: z.boolean().nullish(),
  autodetect_manual_merge: z.boolean().nullish(),
});

export const pullSchema = z.object({
  number: z.int().positive(),
  html_url: z.string(),
  state: z.string(),
  title: z.string(),
  body: z.string().nullish(),
  user: user.nullish(),
  labels: z.array(labelSchema).nullish(),
  /** Those whose review is requested. */
  requested_reviewers_teams: z.array(z.object({ name: z.string() })).nullish(),
  merged: z.boolean(),
  mergeable: z.boolean().nullish(),
  draft: z.boolean().nullish(),
  merge_commit_sha: z.string().nullish(),
  /** Of the base and the head, before the merge. */
  merge_base: z.string().nullish(),
  merged_by: user.nullish(),
  closed_at: z.string().nullish(),
  created_at: z.string(),
  updated_at: z.string(),
  /** Of the conversation; whether reviews count depends on the version. */
  comments: z.int().nullish(),
  head: z.object({ label: z.string(), sha: z.string(), repo_id: z.int() }),
  base: z.object({ ref: z.string(), repo_id: z.int(), repo: manualMergesSchema.nullish() }),
});
export const pullsSchema = z.array(pullSchema);
export type GiteaPull = z.infer<typeof pullSchema>;

const reviewSchema = z.object({
  id: z.int(),
  user: user.nullish(),
  state: z.string(),
  commit_id: z.string().nullish(),
  dismissed: z.boolean().nullish(),
  html_url: z.string(),
  submitted_at: z.string().nullish(),
});
export const reviewsSchema = z.array(reviewSchema);
export type GiteaReview = z.infer<typeof reviewSchema>;

const timelineEntrySchema = z.object({
  type: z.string(),
  user: user.nullish(),
  body: z.string().nullish(),
  created_at: z.string().nullish(),
  /** Of the review that was dismissed. */
  review_id: z.int().nullish(),
});
export const timelineSchema = z
  .array(timelineEntrySchema)
  .nullable()
  .transform((entries) => entries ?? []);
export type Timeline = z.infer<typeof timelineEntrySchema>;
/** The text of an entry about a push. */
export const pushedSchema = z.object({
  is_force_push: z.boolean().nullish(),
  commit_ids: z.array(z.string()).nullish(),
});

export const commentSchema = z.object({
  id: z.int().positive(),
  user: user.nullish(),
  original_author: z.string().nullish(),
  body: z.string().nullish(),
  html_url: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
});
export const commentsSchema = z
  .array(commentSchema)
  .nullable()
  .transform((comments) => comments ?? []);
export type GiteaComment = z.infer<typeof commentSchema>;
/** The entries of a conversation, of which only comments have all of the fields. */
export const conversationSchema = z
  .array(z.looseObject({ type: z.string() }))
  .nullable()
  .transform((entries) => entries ?? []);

export const issueSchema = z.object({
  number: z.int().positive(),
  html_url: z.string(),
  state: z.string(),
  title: z.string(),
  body: z.string().nullish(),
  user: user.nullish(),
  original_author: z.string().nullish(),
  labels: z.array(labelSchema).nullish(),
  assignees: z.array(user).nullish(),
  closed_at: z.string().nullish(),
  updated_at: z.string(),
  pull_request: z.unknown().optional(),
});
export const issuesSchema = z.array(issueSchema);
export type GiteaIssue = z.infer<typeof issueSchema>;

export const ownUserSchema = user;
export const usersSchema = z.array(user);
export const permissionSchema = z.object({ permission: z.string() });

export const memberSchema = user;
export const teamsSchema = z.object({ data: z.array(z.object({ id: z.int(), name: z.string() })).nullish() });

const statusSchema = z.object({
  context: z.string(),
  status: z.string(),
  description: z.string().nullish(),
  target_url: z.string().nullish(),
});
export const combinedStatusSchema = z.object({ statuses: z.array(statusSchema).nullish() });
export type CommitStatus = z.infer<typeof statusSchema>;

export const branchSchema = z.object({ protected: z.boolean() });
/** Methods of merging that a repository permits. */
export const methodsSchema = z.object({
  allow_merge_commits: z.boolean(),
  allow_squash_merge: z.boolean(),
  allow_rebase: z.boolean(),
});
