/** SQL that both SQLite and PostgreSQL accept. */

export const sandboxCount = 100_000
export const metricsSpanSeconds = 7 * 24 * 60 * 60
const sampleIntervalSeconds = 5

/**
 * Copies one sandbox until there are `sandboxCount`, two started per second, and adds metrics of its team up to now.
 * Whole rows are copied, so the statements do not depend on the columns.
 */
export const fillStatements = `
create temporary table numbers as
  with recursive counted(n) as (select 1 union all select n + 1 from counted where n < ${sandboxCount - 1})
  select n from counted;

create temporary table copies as select sandboxes.*, n from sandboxes, numbers;
update copies set id = substr(id, 1, 11) || (100000000 + n), started_at = started_at - n / 2 * 1000;
alter table copies drop column n;
create temporary table metadata_copies as
  select copies.id, key, value from sandbox_metadata, copies;
insert into sandboxes select * from copies;
insert into sandbox_metadata select * from metadata_copies;

create temporary table sample_times as
  with recursive counted(at) as (
    select (select max(started_at) / 1000 / ${sampleIntervalSeconds} * ${sampleIntervalSeconds} from sandboxes)
    union all
    select at - ${sampleIntervalSeconds} from counted where at > (select max(started_at) / 1000 - ${metricsSpanSeconds} - 60 from sandboxes)
  )
  select at from counted;
delete from team_metrics;
insert into team_metrics (team_id, at, concurrent, started)
  select teams.id, at, at / 5 % 97, at / 5 % 3 from teams, sample_times order by at;
`

/** Selects one page, the metadata of its sandboxes, and the total count. */
export function listStatements(teamId: string, limit: number): string {
  const matching = `team_id = '${teamId}' and state = 'running'`
  const order = 'order by started_at desc, id'
  return `
select * from sandboxes where ${matching} ${order} limit ${limit};
select * from sandbox_metadata where sandbox_id in (select id from sandboxes where ${matching} ${order} limit ${limit});
select count(*) from sandboxes where ${matching};
`
}

export interface Span {
  /** Unix seconds, inclusive. */
  readonly start: number
  readonly end: number
}

export function teamMetricsStatement(
  teamId: string,
  { start, end }: Span,
  stepSeconds: number,
): string {
  return `
select at - at % ${stepSeconds} as step, max(concurrent), sum(started) from team_metrics
where team_id = '${teamId}' and at >= ${start} and at <= ${end} group by step order by step;
`
}
