import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import { DELETED } from '../../src/package/trust/ledger/trust-ledger.ts';

/** False if labels that the revision has or had are in a record that does not count, or was removed. */
export function areLabelsKnown(
  { path, key, record, recordDistrust, tip }: PackageRevision,
  { trust }: PackageRepository,
): boolean {
  if (recordDistrust !== undefined) return false;
  if (record !== undefined) return true;
  const scope = { package: path, workspace: key.workspace };
  const mark = trust.mark(scope);
  if (mark === undefined || mark.digest === DELETED) return true;
  // A publication makes earlier records obsolete. An adopted tag does not: a mark means that there was a record.
  const signed = tip.facts.statement;
  if (signed === undefined) return false;
  const { statement } = signed;
  // An operator can adopt a tag whose commit carries a statement about another revision.
  const isOwn =
    statement.repository === trust.repository && statement.package === path && statement.workspace === key.workspace;
  return isOwn && mark.sequence <= statement.sequence;
}
