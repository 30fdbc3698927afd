import { newKptfile } from '../../../../kptfile-schema/index.ts';
import { type RevisionKey, revisionName } from '../../model/identity/identity.ts';
import { packagePath } from '../../model/identity/layout.ts';
import type { RevisionSource } from '../../upstream/revision-source.ts';
import { withEditErrors } from '../edit/edit-kptfile-text.ts';
import type { RepositoryContext } from '../ports/repository-context.ts';
import { ownNameOf, packageContext } from './package-context.ts';
import type { Start } from './start.ts';

/** A new package: a Kptfile, a README, the context that Porch writes in every repository, and the files given. */
export function startInit(
  repo: RepositoryContext,
  key: RevisionKey,
  source: Extract<RevisionSource, { type: 'init' }>,
): Start {
  const path = packagePath(repo.layout, key.package);
  const ownName = ownNameOf(key.package);
  const description = source.description ?? `${ownName} description`;
  const kptfile = withEditErrors(revisionName(key), () => newKptfile({ name: ownName, description, ...pick(source) }));
  const files = new Map<string, Uint8Array>([
    ['Kptfile', Buffer.from(kptfile)],
    ['README.md', Buffer.from(`# ${ownName}\n\n${description}\n`)],
    ['package-context.yaml', Buffer.from(packageContext('example'))],
    ...(source.files ?? []),
  ]);
  return {
    subject: 'Creating new empty revision',
    task: { type: 'init', init: { description, ...pick(source) } },
    edits: new Map([...files].map(([file, data]) => [`${path}/${file}`, { data }])),
  };
}

function pick(source: { keywords?: readonly string[]; site?: string }): { keywords?: string[]; site?: string } {
  return {
    ...(source.keywords === undefined ? {} : { keywords: [...source.keywords] }),
    ...(source.site === undefined ? {} : { site: source.site }),
  };
}
