// A resolver is one module whose default export says which condition it issues, for which packages, and how.
import type { Resolver } from '../../src/package/plan/ports/resolver.ts';

const TYPE = 'example.com/TeamLabel';

/** Every Deployment must have a label with the team that runs it. */
const teamLabel: Resolver = {
  name: 'team-label',
  claims: [TYPE],
  applies: ({ objects }) => objects.some(({ kind }) => kind === 'Deployment'),
  resolve: ({ objects }) => {
    const unlabelled = objects.filter(({ kind, value }) => kind === 'Deployment' && !teamOf(value));
    const names = unlabelled.map(({ name }) => name).join(', ');
    return {
      conditions: [
        unlabelled.length === 0
          ? { type: TYPE, status: 'True', reason: 'Labelled', message: 'every Deployment has a team' }
          : { type: TYPE, status: 'False', reason: 'NoTeam', message: `add the label "team" to ${names}` },
      ],
      // The package cannot be published before it is True.
      gates: [TYPE],
    };
  },
};

function teamOf(object: { readonly metadata?: { readonly labels?: { readonly team?: string } } }): string | undefined {
  return object.metadata?.labels?.team;
}

export default teamLabel;
