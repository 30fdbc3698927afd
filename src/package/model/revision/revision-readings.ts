import { z } from 'zod';
import { explanationSchema } from './explanation.ts';

// The results of the read-only sub-resources of PackageRevision, each with apiVersion, kind and metadata.

export const historySchema = z.object({
  entries: z
    .array(
      z.object({
        at: z.string().describe('RFC 3339.'),
        by: z.string(),
        face: z.string().describe('cli, api, controller or git; empty where it is not known.'),
        action: z.string(),
        what: z.string(),
        reason: z.string().exactOptional(),
        commit: z.string(),
      }),
    )
    .describe('What happened to the revision, the newest first.'),
});

const changes = {
  files: z
    .array(
      z.object({
        path: z.string(),
        change: z.string().describe('Added, Removed or Modified.'),
        binary: z.literal(true).exactOptional().describe('Set for a file that is not text.'),
        truncated: z.literal(true).exactOptional().describe('Set if the patch is left out because it is too large.'),
        hidden: z
          .literal(true)
          .exactOptional()
          .describe('Set if the patch is left out because the file in the branch of a target may contain a Secret.'),
        patch: z
          .string()
          .describe('The difference in the form that git apply reads. Empty if truncated or hidden is set.'),
      }),
    )
    .describe('The files that differ, by path.'),
  truncated: z
    .literal(true)
    .exactOptional()
    .describe('Set if the difference is too large to be returned as a whole: files are truncated or omitted.'),
  omittedFiles: z.int().min(1).exactOptional().describe('How many more files differ than files lists.'),
};

export const diffSchema = z.object({
  from: z
    .string()
    .exactOptional()
    .describe('The revision that is compared with; absent for a package that has nothing before it.'),
  to: z.string(),
  ...changes,
});

/** The state of a target in a preview; docs/api-server.md explains each. */
const PREVIEW_STATES = ['Changes', 'Unchanged', 'Refused', 'NotSelected', 'Unreadable'] as const;

const targetPreview = z.object({
  target: z.string().describe('Name of the DeliveryTarget.'),
  repo: z.string().exactOptional().describe('Address of the repository of the target.'),
  branch: z.string().exactOptional(),
  commit: z.string().exactOptional().describe('The commit of the branch that the files are compared with.'),
  state: z
    .enum(PREVIEW_STATES)
    .describe(
      'Changes: publication commits files. Unchanged: it does not. Refused, NotSelected, Unreadable: see message.',
    ),
  reason: z.string().exactOptional().describe('The reason of a refusal, as the status of the target would report it.'),
  message: z.string().exactOptional(),
  ...changes,
});

export const previewSchema = z.object({
  revision: z
    .int()
    .describe('The number of the revision; for a draft or proposal, the one that publication gives to it.'),
  targets: z.array(targetPreview).describe('The targets that select the package or deliver it at present, by name.'),
  omittedTargets: z.int().min(1).exactOptional().describe('How many more targets there are; name one to preview it.'),
});

export type TargetPreview = z.infer<typeof targetPreview>;
export type RevisionPreview = z.infer<typeof previewSchema>;

export const explainSchema = z.object({ explanation: explanationSchema });
