import { readFile } from 'node:fs/promises';
import { dump, load } from 'js-yaml';
import { z } from 'zod';
import { type DataFolder, expectDataFolder } from '../../app/data/data-folder.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { parseDuration } from '../../resource/object/duration.ts';
import { addToken } from '../../server/authentication/token-file.ts';
import { expectActorName } from '../access/actor.ts';
import { kubeconfigOf, localFolderOf, placeOf } from '../access/place.ts';
import type { CommandResult, DataOptions, Invocation } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';

export interface TokenOptions extends DataOptions {
  readonly kubeconfig?: string;
  readonly group?: readonly string[];
  readonly expires?: string;
  readonly output: 'kubeconfig' | 'token';
}

const clustersSchema = z.object({
  clusters: z.array(z.object({ name: z.string(), cluster: z.record(z.string(), z.unknown()) })).min(1),
});

/** `sluice token create`: for users other than the owner of the data folder. A running server accepts the token within a second. */
export async function tokenCreate(user: string, options: TokenOptions, invocation: Invocation): Promise<CommandResult> {
  const { terminal, environment } = invocation;
  expectActorName(user);
  const folder = await folderOfServer(options, environment);
  const lifetime = options.expires === undefined ? undefined : parseDuration(options.expires);
  if (options.expires !== undefined && lifetime === undefined) {
    throw new SluiceError('InvalidInput', '--expires must be a duration such as 720h or 90m');
  }
  const cluster = options.output === 'kubeconfig' ? await clusterOf(folder) : undefined;
  const request = { user, groups: options.group ?? [], ...(lifetime === undefined ? {} : { lifetime }) };
  const token = await addToken(folder.tokens, request, systemClock);
  if (cluster === undefined) terminal.line(token);
  else {
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [cluster],
      users: [{ name: user, user: { token } }],
      contexts: [{ name: cluster.name, context: { cluster: cluster.name, user } }],
      'current-context': cluster.name,
    };
    terminal.out.write(dump(config, { lineWidth: -1 }));
  }
  terminal.note(
    `${printable(user)} may do what roles bound to that user and its groups allow; see "kubectl create rolebinding"`,
  );
  return 0;
}

/**
 * The data folder whose server the command line means, by the same rules as for packages. Tokens are kept in it, so that of a kubeconfig
 * elsewhere none can be made.
 */
async function folderOfServer(options: TokenOptions, environment: NodeJS.ProcessEnv): Promise<DataFolder> {
  const place = placeOf(options, environment);
  if (place.kind === 'folder') {
    await expectDataFolder(place.folder);
    return place.folder;
  }
  const folder = localFolderOf(place, environment);
  if (folder !== undefined) return folder;
  const file = kubeconfigOf(place, environment);
  throw new SluiceError(
    'Unsupported',
    `${file} is not the kubeconfig of a data folder on this machine, and tokens are made there: run this where "sluice up" runs, or name the folder with --data`,
  );
}

/** Returns the server of the data folder, from its kubeconfig. */
async function clusterOf({ kubeconfig }: DataFolder): Promise<z.infer<typeof clustersSchema>['clusters'][number]> {
  try {
    const { clusters } = clustersSchema.parse(load(await readFile(kubeconfig, 'utf8')));
    const [first] = clusters;
    if (first !== undefined) return clusters.find(({ name }) => name === 'sluice') ?? first;
  } catch (error) {
    throw new SluiceError(
      'NotFound',
      `${kubeconfig} does not contain the address of the server: start "sluice up" once, or print only the token with -o token`,
      { cause: error },
    );
  }
  throw new SluiceError('Internal', 'a list with an entry has none');
}
