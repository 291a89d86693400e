-- Members who were invited with a test key before memberships told whether they are limited to test data. They have no
-- person yet, so that none of them has signed in. The latest invitation of an address counts.
update members m set is_test_only = true
where m.person_id is null and not m.is_test_only
  and 'test' = (
    select k.mode
    from audit_entries a left join api_keys k on k.id = a.key_id
    where a.org_id = m.org_id and a.action = 'member.invited' and a.object_id = m.id
    order by a.at desc, a.id desc
    limit 1
  );
