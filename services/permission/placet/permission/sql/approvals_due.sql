-- Open questions whose time is over, of every tenant; enough of each to say so.
select *, true as past from approval where state = 'pending' and expires_at <= clock_timestamp()
 order by expires_at limit 100
