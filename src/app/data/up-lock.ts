import { z } from 'zod';
import { lockHolder } from '../../foundation/files/process-lock.ts';
import type { DataFolder } from './data-folder.ts';

/** Information that a running `sluice up` stores in its lock, for commands in other terminals. */
const aboutSchema = z.object({
  resolvers: z.array(
    z.object({ name: z.string(), claims: z.array(z.string()), waitsFor: z.array(z.string()).exactOptional() }),
  ),
  disabled: z.array(z.string()),
  /** True if it serves, or is about to. */
  serves: z.boolean(),
});

export type UpAbout = Readonly<z.infer<typeof aboutSchema>>;

/** The running `up` of a data folder; undefined if there is none. */
export async function runningUp(folder: DataFolder): Promise<UpAbout | undefined> {
  const holder = await lockHolder(folder.upLock);
  if (holder === undefined) return undefined;
  const about = aboutSchema.safeParse(holder.about);
  // Another version of sluice wrote it: it runs, and its other details are unknown.
  return about.success ? about.data : { resolvers: [], disabled: [], serves: false };
}
