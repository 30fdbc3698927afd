import { SluiceError } from '../../foundation/sluice-error.ts';
import type { HostRules } from '../../git/network/host-rules.ts';
import { checkRemoteUrl } from '../../git/network/remote-url.ts';
import { isHosted, isOnThisMachine, localPath } from '../../git/open/open-location.ts';
import { SIGNING_ANNOTATION } from '../../resource/kinds/common/git-location.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import { resourceName } from '../../resource/storage/memory/object-rules.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { isAllowed, permission } from '../authorization/require-allowed.ts';
import type { PlannedWrite } from '../handlers/handler.ts';
import { WEBHOOK_SECRET_ANNOTATION } from '../webhooks/webhook-secrets.ts';

/** The use that Sluice makes of the Secrets in annotations. */
const USES: Readonly<Record<string, string>> = {
  [SIGNING_ANNOTATION]: 'signs its commits',
  [WEBHOOK_SECRET_ANNOTATION]: 'verifies its webhooks',
};

type GitObject = { readonly spec?: { readonly git?: GitLocation | undefined } | undefined } | undefined;

interface GitLocation {
  readonly repo: string;
  readonly secretRef?: { readonly name: string } | undefined;
}

/** A resource for rules alone, with the verb `use`; its names are addresses. It has no URL. */
const LOCAL_REPOSITORIES = { group: 'sluice.dev', resource: 'localrepositories' } as const;

/**
 * Checks a create or update of an object with a Git address, after the write itself was authorised: Sluice accesses it with its own
 * rights, and callers must not gain access through them. An address on the machine of the server, whether a path, a port or a
 * repository that Sluice keeps, belongs to no namespace: it requires the verb `use` on `localrepositories`, which a role may grant for
 * single addresses. A Secret is sent to the address, and one that an annotation names is used for all writers, so each requires the
 * right to read it. Unchanged fields are not checked again. A host that `hosts` refuses is refused for every caller.
 */
export async function checkGitLocation(
  { user, kind, object, old }: PlannedWrite,
  authorizer: Authorizer,
  hosts: HostRules,
): Promise<void> {
  if (![repositoryKind, deliveryTargetKind].some((one) => one.group === kind.group && one.kind === kind.kind)) return;
  const { name, namespace = '', annotations } = object.metadata;
  const check = async (verb: string, about: { group: string; resource: string }, what: string, why: string) => {
    if (await isAllowed(authorizer, permission(user, verb, { ...about, namespace, name: what }))) return;
    const message = `${resourceName(kind)} ${JSON.stringify(name)} is forbidden: ${why}`;
    throw new SluiceError('Refused', message, { details: { name, group: kind.group, kind: kind.plural } });
  };
  const requireReadable = async (secret: string, use: string) => {
    const why = `the Secret ${namespace}/${secret} ${use}, and User ${JSON.stringify(user.name)} cannot read it`;
    const way = 'name one that you may read, or let a user who may read it write this';
    await check('get', { group: '', resource: 'secrets' }, secret, `${why}; ${way}`);
  };
  for (const [annotation, use] of Object.entries(USES)) {
    const secret = annotations?.[annotation];
    if (secret && secret !== old?.metadata.annotations?.[annotation]) await requireReadable(secret, use);
  }
  const git = (object as GitObject)?.spec?.git;
  if (git === undefined || sameValue(git, (old as GitObject)?.spec?.git)) return;
  checkHost(git.repo, hosts);
  // Many services trust every client on their machine, so a port takes the same right as a path.
  if (isOnThisMachine(git.repo)) {
    const right = `the verb "use" on localrepositories.sluice.dev ${JSON.stringify(git.repo)}`;
    const way = 'use the https:// or ssh:// address of another host, or get a role with that right';
    await check(
      'use',
      LOCAL_REPOSITORIES,
      git.repo,
      `spec.git.repo is on the machine of the server and requires ${right};  ${way}`,
    );
  }
  const secret = git.secretRef?.name ?? '';
  if (secret !== '') await requireReadable(secret, 'is sent to spec.git.repo');
}

/** Refuses early what would be refused when it is opened. A name that resolves to a local address is refused only then. */
function checkHost(repo: string, hosts: HostRules): void {
  if (!isHosted(repo) && localPath(repo) === undefined) checkRemoteUrl(repo, hosts);
}
