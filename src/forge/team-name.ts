import { SluiceError } from '../foundation/sluice-error.ts';

/** Organization and name of a team, `<organization>/<name>`. Throws InvalidInput. */
export function teamName(team: string): { readonly organization: string; readonly name: string } {
  const [organization, name, ...others] = team.split('/');
  if (!organization || !name || others.length > 0)
    throw new SluiceError('InvalidInput', `the name of a team is not <organization>/<team>: ${JSON.stringify(team)}`);
  return { organization, name };
}
