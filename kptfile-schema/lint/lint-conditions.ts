import { isConditionStatus } from '../model/conditions.ts';
import type { Kptfile } from '../model/kptfile-schema.ts';
import type { LintReport, Step } from './lint-finding.ts';

/** Warnings about conditions and gates; kpt checks none of this. */
export function lintConditions(kptfile: Kptfile, report: LintReport): void {
  const types = new Map<string, number>();
  kptfile.status?.conditions?.forEach(({ type, status }, index) => {
    const steps = ['status', 'conditions', index];
    if (type === undefined || type === '') {
      report.warning(
        'ConditionWithoutType',
        steps,
        'A condition without a type means nothing. Give it one or remove it.',
      );
      return;
    }
    const earlier = types.get(type);
    if (earlier === undefined) types.set(type, index);
    else {
      const text = `The condition ${type} occurs again, after conditions[${earlier}]. If they disagree it counts as False.`;
      report.warning('DuplicateCondition', [...steps, 'type'], text);
    }
    if (!isConditionStatus(status)) {
      const found = status === undefined || status === '' ? 'no status' : `status ${JSON.stringify(status)}`;
      const text = `The condition ${type} has ${found} and counts as Unknown. It must be "True", "False" or "Unknown".`;
      report.warning('ConditionStatus', [...steps, 'status'], text);
    }
    lintName(type, [...steps, 'type'], report);
  });
  lintGates(kptfile, types, report);
}

function lintGates(kptfile: Kptfile, conditions: ReadonlyMap<string, number>, report: LintReport): void {
  const gates = new Set<string>();
  kptfile.info?.readinessGates?.forEach(({ conditionType }, index) => {
    const steps = ['info', 'readinessGates', index];
    if (conditionType === undefined || conditionType === '') {
      report.warning(
        'GateWithoutType',
        steps,
        'A readiness gate without conditionType means nothing. Give it one or remove it.',
      );
      return;
    }
    if (gates.has(conditionType)) {
      report.warning('DuplicateGate', [...steps, 'conditionType'], `The readiness gate ${conditionType} occurs again.`);
      return;
    }
    gates.add(conditionType);
    if (conditions.has(conditionType)) return;
    const text = `No condition ${conditionType} is in status.conditions, so this gate stays closed until something sets it.`;
    report.warning('GateWithoutCondition', [...steps, 'conditionType'], text);
    lintName(conditionType, [...steps, 'conditionType'], report);
  });
}

/** Nephio splits `<group>/<version>.<Kind>.<name>` at the dots and ignores the condition if the name has one. */
function lintName(type: string, steps: readonly Step[], report: LintReport): void {
  const match = /^[^/]+\/v\d[a-z0-9]*\.[A-Z][A-Za-z0-9]*\.(.+)$/.exec(type);
  const name = match?.[1];
  if (name?.includes('.')) {
    report.warning(
      'ConditionNameDot',
      steps,
      `Nephio does not recognise this condition, because the name ${name} has a dot.`,
    );
  }
}
