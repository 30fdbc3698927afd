import { runningUp } from '../../app/data/up-lock.ts';
import type { OpenFailure } from '../../app/repositories/open-failure.ts';
import { signingChoice } from '../../app/trust/signing-choice.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { customResourceDefinitionKind } from '../../resource/kinds/apiextensions/custom-resource-definition.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object/object.ts';
import type { ActorOptions, PlaceOptions } from '../output/invocation.ts';
import type { Access } from './access.ts';
import { actorOf } from './actor.ts';
import { placeOf } from './place.ts';

export interface OpenAccessOptions {
  readonly options: PlaceOptions & ActorOptions;
  readonly environment: NodeJS.ProcessEnv;
  /** The command writes objects; a missing data folder is created. */
  readonly write: boolean;
  /** Called once for each limitation of the Git engine or the server in use. */
  readonly onNote: (text: string) => void;
  /** Called with each warning about a request, such as that its result is from an earlier fetch; `namespace` is that of its object. */
  readonly onWarning: (text: string, namespace?: string) => void;
  /** Called for each repository that could not be opened for a list. */
  readonly onOpenFailure: (failure: OpenFailure) => void;
}

/**
 * Opens the API that a command line means: of a server by its kubeconfig, or of a data folder, by its `up` if one runs, else in this process. What only one of them needs
 * is read only then: a command that speaks to a server starts twice as fast.
 */
export async function openAccess({
  options,
  environment,
  write,
  onNote,
  onWarning,
  onOpenFailure,
}: OpenAccessOptions): Promise<Access> {
  const { namespace } = options;
  const place = placeOf(options, environment);
  if (place.kind === 'server') {
    const [{ Connection }, { findClusterAccess }, { ServerAccess }] = await Promise.all([
      import('../../kubernetes/connection/connection.ts'),
      import('../../kubernetes/access/kubeconfig.ts'),
      import('./server-access.ts'),
    ]);
    const { kubeconfig, context } = place;
    const found = await findClusterAccess({ kubeconfig, context, environment, clock: systemClock });
    const connection = new Connection(found, { onWarning });
    if (options.as === undefined && (options.asGroup ?? []).length > 0)
      throw new SluiceError(
        'InvalidInput',
        'a server adds --as-group only to the user of --as; name both, or use the kubeconfig of a member of the group',
      );
    // The server knows the caller; only --as requests to act for another user.
    const actor = options.as === undefined ? undefined : actorOf(options, environment, true);
    try {
      return await ServerAccess.open({ connection, namespace, actor, onWarning });
    } catch (error) {
      await connection.close();
      throw error;
    }
  }
  const { folder } = place;
  const actor = actorOf(options, environment);
  if ((await runningUp(folder))?.serves === true) {
    const { runningServer } = await import('./running-server.ts');
    const server = await runningServer(folder, { actor, namespace, onWarning });
    if (server !== undefined) return server;
  }
  const [{ Session }, { gitNetworkOf }] = await Promise.all([
    import('../../app/session/session.ts'),
    import('../../app/repositories/git-network.ts'),
  ]);
  const signing = signingChoice(environment);
  const network = gitNetworkOf({}, environment);
  let unread = 0;
  const countFailure = (failure: OpenFailure) => {
    unread += 1;
    onOpenFailure(failure);
  };
  const session = await Session.open({
    ...{ folder, actor, write, signing, network, onNote, onWarning, onOpenFailure: countFailure },
  });
  const definitions = (await session.client.list(customResourceDefinitionKind)).items;
  if (definitions.length > 0)
    (await import('../../app/session/custom-kinds.ts')).customKindsOf(session).restore(definitions);
  return {
    where: `the data folder ${folder.path}`,
    server: undefined,
    namespace: namespace ?? DEFAULT_NAMESPACE,
    defaultNamespace: DEFAULT_NAMESPACE,
    clock: session.clock,
    client: session.client,
    isSluice: true,
    isOwnServer: true,
    systemNamespace: session.readers.systemNamespace,
    caller: async () => session.client.actor,
    unreadRepositories: async () => unread,
    close: () => session.close(),
  };
}
