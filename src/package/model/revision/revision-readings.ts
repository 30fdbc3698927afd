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

export const diffSchema = z.object({
  from: z
    .string()
    .exactOptional()
    .describe('The revision that is compared with; absent for a package that has nothing before it.'),
  to: z.string(),
  files: z
    .array(
      z.object({
        path: z.string(),
        change: z.string().describe('Added, Removed or Modified.'),
        binary: z.literal(true).exactOptional().describe('Set for a file that is not text.'),
        truncated: z.literal(true).exactOptional().describe('Set if the patch is left out because it is too large.'),
        patch: z.string().describe('The difference in the form that git apply reads. Empty if truncated is set.'),
      }),
    )
    .describe('The files that differ, by path.'),
  truncated: z
    .literal(true)
    .exactOptional()
    .describe('Set if the difference is too large to be returned as a whole: files are truncated or omitted.'),
  omittedFiles: z.int().min(1).exactOptional().describe('How many more files differ than files lists.'),
});

export const explainSchema = z.object({ explanation: explanationSchema });
